"""The routes of the REST surface, as the application has them."""

from fastapi import FastAPI

from app.api.surface import install_rest, rest_routers
from app.edge.health import Readiness
from app.edge.lifespan_state import Drain


def test_every_route_is_built_once_for_all_applications() -> None:
    routers = rest_routers(Readiness(Drain()), None)
    for _ in range(2):
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        install_rest(app, routers)
        own = [route for router in routers for route in router.routes]
        assert len(own) > 100
        assert all(built is route for built, route in zip(app.routes, own, strict=True))
