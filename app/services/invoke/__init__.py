"""Running one middleware, a pipeline or an interceptor, and what follows a run."""
