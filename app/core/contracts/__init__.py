"""What middlewares and engines promise: the plug-in contract, engines, pipelines and policies."""
