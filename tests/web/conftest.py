from tests.http.conftest import Serve, serve
from tests.web.pages import built, not_built

__all__ = ["Serve", "built", "not_built", "serve"]
