"""The file of hooks, and secrets."""

from pathlib import Path

import pytest

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.webhooks.hooks_file import Webhook, add_hook, read_hooks, remove_hook
from wakelog.webhooks.signature import make_secret, secret_of


def test_hooks_come_back_as_they_were_added(tmp_path: Path) -> None:
    file = tmp_path / "hooks.toml"
    assert read_hooks(file) == ()
    one = Webhook("ops", "https://ops.example/in?token=x", "env:A", ("flag",), "error", True)
    add_hook(file, one)
    add_hook(file, Webhook("other", "http://127.0.0.1:1/", "secret.txt"))
    add_hook(file, Webhook("other", "http://127.0.0.1:2/", "secret.txt"))
    assert [h.url for h in read_hooks(file)] == ["https://ops.example/in?token=x", "http://127.0.0.1:2/"]
    assert read_hooks(file)[0] == one
    assert (one.host, one.severities) == ("https://ops.example", ("error", "alarm"))
    remove_hook(file, "ops")
    with pytest.raises(NotFoundError, match="known: other"):
        remove_hook(file, "ops")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "cannot be read"),
        ("hooks = 1", "'hooks' is unknown"),
        ('[[hook]]\nname = "a"\nurl = "https://x"', "secret"),
        ('[[hook]]\nname = "a"\nurl = "https://x"\nsecret = "env:A"\ntypo = 1', "typo"),
        ('[[hook]]\nname = "a"\nurl = "http://x.example"\nsecret = "env:A"', "must use https"),
        ('[[hook]]\nname = "a"\nurl = "ftp://x"\nsecret = "env:A"', "needs an address"),
        ('[[hook]]\nname = "a"\nurl = "https://x"\nsecret = "env:A"\non = ["party"]', "'party' is not a topic"),
        ('[[hook]]\nname = "a"\nurl = "https://x"\nsecret = "env:A"\nseverity = "bad"', "is not a severity"),
        ('[[hook]]\nname = "a"\nurl = "https://x"\nsecret = "env:A"\n' * 2, "needs a different name"),
    ],
)
def test_a_bad_file_is_told_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "hooks.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=said) as caught:
        read_hooks(file)
    assert caught.value.kind == "bad-webhook"


@pytest.mark.parametrize("value", ["hunter2", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%"])
def test_a_bad_secret_is_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOOK", value)
    with pytest.raises(InvalidInputError) as caught:
        secret_of("env:HOOK")
    assert value not in str(caught.value).replace("whsec_ and", "")
    with pytest.raises(InvalidInputError) as given:
        secret_of(make_secret())
    assert given.value.kind == "bad-webhook"
