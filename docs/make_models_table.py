"""Writes the table of docs/models.md: what fits whom, by the code that `localspec models` runs.

python docs/make_models_table.py
"""

from pathlib import Path

from localspec.hub.catalog import load_catalog
from localspec.hub.machine import apple_silicon, laptop
from localspec.hub.offers import offers

PAGE = Path(__file__).with_name("models.md")
BEGIN, END = "<!-- made by make_models_table.py -->\n", "<!-- end -->\n"
SIZES = (8, 16, 24, 36, 64)


def table() -> str:
    """One table for Macs, whose GPU shares the memory, and one for computers without a GPU."""
    catalog = load_catalog()
    parts = []
    for title, made in (("Apple Silicon", apple_silicon), ("Without a GPU", laptop)):
        lines = [f"**{title}**\n", "| pair | " + " | ".join(f"{size} GB" for size in SIZES) + " |"]
        lines.append("|---|" + "---|" * len(SIZES))
        columns = [offers(catalog, [], made(size)) for size in SIZES]
        for row in zip(*columns, strict=True):
            cells = [
                f"{offer.target.quantization}: {offer.verdict.text}" if offer.verdict.fits else "-" for offer in row
            ]
            lines.append(f"| {row[0].pair.name} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def page(text: str) -> str:
    """The page with the table in its place."""
    before, rest = text.split(BEGIN)
    _old, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
