"""Learn the vector field f of an ODE dx/dt = f(x) from trajectories."""

__version__ = "0.1.0"
