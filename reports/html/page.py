# SPDX-License-Identifier: Apache-2.0
"""Fills the templates with what a report says.

Escaping is jinja2's, on for every template; the one thing that goes in as markup is the SVG that matplotlib wrote, and
its text passed an XML writer. The page says by its content policy that nothing may be loaded and no script may run.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.page_baselines import published
from reports.page_claims import claim_rows
from reports.page_dtypes import type_matrix
from reports.page_model import SIMULATED_LINE, page_of
from reports.page_provenance import fact_sources, row_sources, unshown
from reports.page_reading import Record
from reports.plots import plots_of
from reports.text import inert

if TYPE_CHECKING:
    from jinja2 import Environment

    from reports.plots.series import ModelLayers

_TEMPLATES = Path(__file__).parent / "templates"


class MissingPackage(Exception):
    """jinja2 is not installed. The text is fit for the user."""


def render_html(report: Record, model: ModelLayers | None = None) -> str:
    """The page of ``report``; with ``model``, its layers on the roofline. Raises MissingPackage without jinja2.

    Without matplotlib the page has the sentence that says so where its plots would be.
    """
    environment = _environment()
    sources, methods = row_sources(report)
    return environment.get_template("page.html.j2").render(
        page=page_of(report),
        simulated_line=SIMULATED_LINE,
        plots=_with_markup(report, model),
        matrix=type_matrix(report),
        claims=claim_rows(report),
        published=published(report),
        facts=fact_sources(report),
        sources=sources,
        methods=methods,
        unshown=unshown(report),
    )


def _with_markup(report: Record, model: ModelLayers | None) -> list[tuple[Any, Any]]:
    """Each plot with its SVG as markup, which jinja2 then leaves as it is."""
    from markupsafe import Markup  # noqa: PLC0415

    return [(plot, Markup(plot.svg) if plot.svg is not None else None) for plot in plots_of(report, model)]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  an extra
    except ImportError as error:
        raise MissingPackage(
            f"jinja2 is not installed ({inert(error, 100)}), and the HTML page is made with it: "
            "in the checkout: pip install '.[report]'"
        ) from error
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
