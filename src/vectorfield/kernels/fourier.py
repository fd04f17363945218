"""Random Fourier features of radial kernels (Rahimi and Recht 2007), plain and orthogonal.

By Bochner's theorem k(x - y) = E cos(omega . (x - y)) with omega drawn from the spectral density
of k. With z standard normal in d dimensions and all divided by sigma:

- Gaussian: omega = z.
- Matern of nu, exp(-r) q_p(r) without a factor sqrt(2 nu) on r: omega = z / sqrt(s), s chi-squared
  with 2 nu degrees of freedom: a multivariate t of 2 nu degrees of freedom over sqrt(2 nu).
- Laplace, nu = 1/2: the same, a Cauchy distribution.
- Rational quadratic: omega = sqrt(s) z, s of the Gamma distribution of shape and rate alpha.

Orthogonal frequencies (Yu et al. 2016) have the same marginals: within each group of d of them the
directions are the rows of a random rotation, and the lengths are drawn as those of z.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from vectorfield import _backend
from vectorfield._settings import check_choice, check_integer
from vectorfield.kernels.features import ExplicitKernel, FeatureMap, read_only
from vectorfield.kernels.lengths import divide_lengths
from vectorfield.kernels.radial import Gaussian, Laplace, Matern, Radial, RationalQuadratic
from vectorfield.kernels.tiles import contract

__all__ = ["FourierMap", "RandomFourier"]


@dataclass(frozen=True)
class RandomFourier(ExplicitKernel):
    """Random features phi with E phi(x) . phi(y) = k(x, y), for a radial kernel k.

    ``form="paired"`` has for each of q / 2 frequencies sqrt(2 / q) cos(omega . x) and
    sqrt(2 / q) sin(omega . x), so that phi(x) . phi(x) = 1 exactly; ``form="phase"`` has
    sqrt(2 / q) cos(omega . x + b) with b uniform on [0, 2 pi]. The error of the kernel falls as
    q^(-1/2); orthogonal frequencies have less of it at equal q, most so for q not far above d.

    Args:
        kernel: `Gaussian`, `Matern`, `Laplace` or `RationalQuadratic`, of one length scale or one
            for each coordinate; None is the median distance, set when a model is fitted.
        count: q, the number of features; even for ``form="paired"``.
        form: ``"paired"`` or ``"phase"``.
        orthogonal: whether directions are orthogonal in groups of d.
        random_state: seed; the same one gives the same features.

    A fit of N observations costs N q^2 + q^3 / 3, a call of the field O(n q d).

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> k = vf.kernels.Matern(2.5, length_scale=1.0)
        >>> x = np.linspace(-1.0, 1.0, 6).reshape(3, 2)
        >>> phi = vf.kernels.RandomFourier(k, 2000).bind(x)(x)
        >>> bool(np.abs(phi @ phi.T - k(x)).max() < 0.05)
        True
    """

    kernel: Radial = field(default_factory=Gaussian)
    count: int = 200
    form: str = "paired"
    orthogonal: bool = True
    random_state: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, (Gaussian, Matern, Laplace, RationalQuadratic)):
            raise TypeError(
                "kernel must be Gaussian, Matern, Laplace or RationalQuadratic, whose spectral "
                f"densities are known, got {self.kernel!r}; sums are sums of RandomFourier kernels"
            )
        object.__setattr__(self, "count", check_integer("count", self.count, at_least=1))
        check_choice("form", self.form, ("paired", "phase"))
        if self.form == "paired" and self.count % 2:
            raise ValueError(
                f'count must be even for form="paired", a cosine and a sine for each frequency, '
                f"got {self.count}"
            )
        if not isinstance(self.orthogonal, (bool, np.bool_)):
            raise TypeError(f"orthogonal must be True or False, got {self.orthogonal!r}")
        object.__setattr__(self, "orthogonal", bool(self.orthogonal))
        seed = check_integer("random_state", self.random_state, at_least=0)
        object.__setattr__(self, "random_state", seed)

    def resolved(self, nodes: Any) -> Self:
        """Set an open length scale to the median distance of the nodes."""
        return self.replace(kernel=self.kernel.resolved(nodes))

    def size(self, nodes: Any) -> float:
        """Return 1 = k(z, z)."""
        return 1.0

    @property
    def depends_on_nodes(self) -> bool:
        """False: the frequencies are drawn."""
        return False

    def bind(self, nodes: Any) -> FourierMap:
        """Draw the frequencies. Cost O(q d), times d where they are orthogonal."""
        d = int(nodes.shape[1])
        rng = np.random.default_rng(self.random_state)
        paired = self.form == "paired"
        total = self.count // 2 if paired else self.count
        drawn = _orthogonal(rng, total, d) if self.orthogonal else rng.normal(size=(total, d))
        drawn *= _stretch(self.kernel, rng, total)[:, None]
        phases = None if paired else rng.uniform(0.0, 2.0 * np.pi, size=total)
        frequencies = divide_lengths(drawn, self.kernel.length_scale)
        return FourierMap(
            _backend.array_like(frequencies, nodes),
            None if phases is None else _backend.array_like(phases, nodes),
        )

    def restore(self, arrays: Mapping[str, Any]) -> FourierMap:
        """Return the map with the frequencies of a model file."""
        paired = self.form == "paired"
        frequencies = arrays["frequencies"]
        phases = None if paired else arrays["phases"]
        total = self.count // 2 if paired else self.count
        if frequencies.ndim != 2 or frequencies.shape[0] != total:
            raise ValueError(f"frequencies have shape {frequencies.shape}, expected ({total}, d)")
        if phases is not None and phases.shape != (total,):
            raise ValueError(f"phases have shape {phases.shape}, expected {(total,)}")
        divide_lengths(frequencies[:1, :], self.kernel.length_scale)  # as many as coordinates
        return FourierMap(frequencies, phases)


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """sqrt(2 / q) cos(omega_j . x + b_j), or the cosines and sines where there are no phases.

    Attributes:
        frequencies: omega, (m, d).
        phases: b, (m,), or None for pairs.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> kernel = vf.kernels.RandomFourier(vf.kernels.Gaussian(1.0), 6)
        >>> features = kernel.bind(np.zeros((1, 2)))
        >>> features.frequencies.shape, features(np.zeros((1, 2))).round(3)
        ((3, 2), array([[0.577, 0.577, 0.577, 0.   , 0.   , 0.   ]]))
    """

    frequencies: Any
    phases: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", read_only(self.frequencies))
        object.__setattr__(self, "phases", read_only(self.phases))

    @property
    def q(self) -> int:
        """Number of features."""
        return int(self.frequencies.shape[0]) * (2 if self.phases is None else 1)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.frequencies.shape[1])

    @property
    def weight(self) -> float:
        """sqrt(2 / q), which makes the diagonal of the kernel 1 on average."""
        return float((2.0 / self.q) ** 0.5)

    def __call__(self, x: Any) -> Any:
        """Return phi(x), (n, q). Cost O(n q d) in one matrix product, and n q cosines."""
        if self.phases is None:
            value = _backend.cos_sin(self._angles(x))
        else:
            value = _backend.cos_inplace(self._angles(x))
        value *= self.weight
        return value

    def gradient(self, x: Any) -> Any:
        """Return the derivatives of the features, (n, d, q)."""
        xp = _backend.namespace(x)
        turned = self._turned(x)
        omega = self.frequencies.T
        if self.phases is None:
            omega = xp.concat([omega, omega], axis=1)
        return turned[:, None, :] * omega[None, :, :]

    def jacobian(self, x: Any, c: Any) -> Any:
        """Return the Jacobian, (n, k, d). Cost O(n q d k)."""
        turned = self._turned(x)
        m = self.frequencies.shape[0]
        value = contract(turned[:, :m], c[:m, :], self.frequencies)
        if self.phases is None:
            value += contract(turned[:, m:], c[m:, :], self.frequencies)
        return value

    def hessian(self, x: Any, c: Any) -> Any:
        """Return the second derivatives of phi(x) . c, (n, d, d). Cost O(n q d^2)."""
        slope = self(x) * -c
        m = self.frequencies.shape[0]
        if self.phases is None:
            slope = slope[:, :m] + slope[:, m:]
        return contract(slope, self.frequencies, self.frequencies)

    def arrays(self) -> dict[str, Any]:
        """Return the frequencies, and the phases if there are any."""
        own = {"frequencies": self.frequencies}
        return own if self.phases is None else own | {"phases": self.phases}

    def _angles(self, x: Any) -> Any:
        angles = x @ self.frequencies.T
        if self.phases is not None:
            angles += self.phases
        return angles

    def _turned(self, x: Any) -> Any:
        """Return the derivatives of the features by their angles, (n, q)."""
        xp = _backend.namespace(x)
        angles = self._angles(x)
        if self.phases is not None:
            return -self.weight * xp.sin(angles)
        value = _backend.cos_sin(angles)
        m = self.frequencies.shape[0]
        return self.weight * xp.concat([-value[:, m:], value[:, :m]], axis=1)


def _orthogonal(rng: np.random.Generator, total: int, d: int) -> np.ndarray:
    """Return normal vectors, (total, d), orthogonal to each other within groups of d."""
    groups = []
    for start in range(0, total, d):
        q, r = np.linalg.qr(rng.normal(size=(d, d)))
        signs = np.where(np.diag(r) < 0, -1.0, 1.0)  # without them q is not uniformly distributed
        groups.append((q * signs).T[: total - start, :])
    lengths = np.sqrt(rng.chisquare(d, size=total))
    return np.concatenate(groups) * lengths[:, None]


def _stretch(kernel: Radial, rng: np.random.Generator, total: int) -> np.ndarray:
    """Return by what the frequencies of a Gaussian kernel are multiplied, (total,)."""
    if isinstance(kernel, Matern):
        return 1.0 / np.sqrt(rng.chisquare(2.0 * kernel.nu, size=total))
    if isinstance(kernel, Laplace):
        return 1.0 / np.sqrt(rng.chisquare(1.0, size=total))
    if isinstance(kernel, RationalQuadratic):
        return np.asarray(np.sqrt(rng.gamma(kernel.alpha, 1.0 / kernel.alpha, size=total)))
    return np.ones(total)
