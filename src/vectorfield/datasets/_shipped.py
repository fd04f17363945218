"""Measured sets, shipped with the library; `data/README.md` tells how they were prepared."""

from __future__ import annotations

from importlib.resources import as_file, files

from vectorfield._errors import DataError
from vectorfield.datasets._dataset import Dataset, Description
from vectorfield.tables import read_splits

__all__ = ["SHIPPED", "read_shipped"]

SHIPPED = {
    "cmu_walk": Description(
        name="cmu_walk",
        real=True,
        d=50,
        trajectories=75,
        samples=101.24,
        text=(
            "Motion capture of people walking: joint angles in degrees and root velocity at 30 "
            "frames a second, counted as 0.1 of time each. Four columns are constant."
        ),
        source=(
            "Carnegie Mellon University Graphics Lab Motion Capture Database "
            "(mocap.cs.cmu.edu), by way of the BVH conversion by B. Hahne (2010)."
        ),
        terms=(
            "Free for use in research and commercial projects worldwide. Published results "
            "should add to their acknowledgments: 'The data used in this project was obtained "
            "from mocap.cs.cmu.edu. The database was created with funding from NSF "
            "EIA-0196217.', and send their citation to jkh+mocap@cs.cmu.edu."
        ),
    ),
    "pbc": Description(
        name="pbc",
        real=True,
        d=6,
        trajectories=283,
        samples=6.51,
        text=(
            "Laboratory values of patients with primary biliary cirrhosis: few visits, at "
            "irregular times, over 0.3 to 14.1 years; times in years."
        ),
        source=(
            "pbcseq in the R package survival 3.5-3 (T. Therneau); Murtaugh et al., Hepatology "
            "20, 1994; Fleming and Harrington, Counting Processes and Survival Analysis, Wiley "
            "1991; Therneau and Grambsch, Modeling Survival Data: Extending the Cox Model, "
            "Springer 2000."
        ),
        terms=(
            "The package states LGPL (>= 2) (Debian's copyright file, older, GPL-2); nothing "
            "separate is said of the data."
        ),
    ),
    "drifters": Description(
        name="drifters",
        real=True,
        d=2,
        trajectories=315,
        samples=91.93,
        text=(
            "Longitude and latitude of surface drifters around Madagascar; times in days, "
            "every half day (inferred: the source has no times)."
        ),
        source=(
            "Lumpkin, R. and Centurioni, L. (2019), Global Drifter Program quality-controlled "
            "6-hour interpolated data from ocean surface drifting buoys, NOAA National Centers "
            "for Environmental Information, doi:10.25921/7ntx-z961, as compiled by M. T. Schaub "
            "et al., SIAM Review 62, 2020, in the GitHub repository nglaze00/SCoNe_GCN."
        ),
        terms=(
            "Repository: MIT licence (Copyright (c) 2021 Nicholas Glaze). Data: made freely "
            "available by NOAA, Creative Commons Attribution 4.0 as reported second hand; asked "
            "for: 'This study used data collected and made freely available by the NOAA Global "
            "Drifter Program'."
        ),
    ),
}


def read_shipped(name: str) -> Dataset:
    """Read the set of that name as it is stored, in the parts that are stored."""
    described = SHIPPED[name]
    with as_file(files("vectorfield").joinpath("data", f"{name}.csv.gz")) as path:
        train, validation, test = read_splits(path)
    if train is None or validation is None or test is None:
        raise DataError(f"the shipped file of {name!r} lacks a part; install the library anew")
    return Dataset(
        name=name,
        train=train,
        validation=validation,
        test=test,
        clean=None,
        field=None,
        source=described.source,
        terms=described.terms,
        description=described.text,
    )
