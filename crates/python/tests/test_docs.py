"""What the pages and the tutorials show works."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from conftest import ROOT

BOOKS = sorted((ROOT / "crates/python/notebooks").glob("*.ipynb"))


def snippets(page: Path) -> str:
    """The page's Python in one piece; blanks in front, so that an error has the page's line."""
    text = page.read_text()
    kept, last = [], 0
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        code = re.sub(r"^\{\{#include (.*)\}\}$", lambda found: (page.parent / found[1]).read_text(), block[1], flags=re.MULTILINE)
        kept.append("\n" * text.count("\n", last, block.start(1)) + code)
        last = block.end(1)
    return "".join(kept)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", ["README.md", "crates/python/README.md", "docs/reference/python.md"])
def test_the_snippets_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = snippets(ROOT / page)
    assert "anabranch" in code
    # As in the repository's root, but for what is written.
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "snippets"}
    exec(compile(code, page, "exec"), names)
    import matplotlib.pyplot as plt

    plt.close("all")


def test_a_paired_study_takes_twenty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "docs/examples/study.py"
    code = script.read_text()
    assert len(code.splitlines()) <= 20
    assert code.count("ab.sweep(") == 1
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, str(script), "exec"), names)
    table = names["table"]
    assert len(table) == 16 and set(table["n"]) == {20}
    # One gateway is what split TCP has too; four are better at every loss, whichever way the interval lies.
    for row in table:
        low, high = row["ratio"] - row["ratio_ci95"], row["ratio"] + row["ratio_ci95"]
        assert (high < 1.0) if row["transfer.update.gateways"] == 4 else (low < 1.2)
    assert capsys.readouterr().out.count("pairs") == 16
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_plot_of_the_first_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/tutorials/first-hour.md").read_text()
    scenario = re.search(r"^```toml,scenario=mine.toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert scenario
    (tmp_path / "mine.toml").write_text(scenario[1])
    script = ROOT / "docs/examples/first_hour.py"
    code = script.read_text()
    assert len(code.splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, str(script), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["loss 0%", "loss 1%", "loss 2%", "loss 5%"]
    # Two gateways are faster than the better one alone.
    assert all(0.4 < float(line.split()[2]) < 0.9 for line in lines)
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
    import matplotlib.pyplot as plt

    plt.close("all")


def test_a_controller_of_one_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "docs/examples/controller.py"
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(script.read_text(), str(script), "exec"), names)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["aimd", "gentle", "newreno", "cubic"]
    # Four flows share 10 Mbit/s.
    assert all(1 < float(row[1]) < 5 for row in rows)


def test_time_series_take_fifteen_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = ROOT / "docs/examples/series.py"
    code = script.read_text()
    assert len(code.splitlines()) < 15
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, str(script), "exec"), names)
    assert (tmp_path / "series.png").read_bytes().startswith(b"\x89PNG")
    import matplotlib.pyplot as plt

    # The picture has three windows that differ, and the queue that they share.
    lines = [line.get_ydata() for line in names["windows"].lines]
    assert [line.get_label() for line in names["windows"].lines] == ["NewReno", "CUBIC", "BBR"]
    assert all(len(line) > 100 and max(line) > 2 * min(line) for line in lines)
    assert 40 < max(names["queue"].lines[0].get_ydata()) <= 66
    plt.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_tutorial(book: Path) -> None:
    notebook: Any = nbformat.read(book, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "tutorials are kept without output"
    # A kernel takes minutes to start beside other programs.
    place = {"metadata": {"path": str(book.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=600, startup_timeout=600, resources=place)
    client.execute(env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    pictures = [out for cell in code for out in cell.outputs if "image/png" in out.get("data", {})]
    assert pictures, "it shows something"


def test_there_are_four_tutorials() -> None:
    assert [book.stem[0] for book in BOOKS] == ["1", "2", "3", "4"]
