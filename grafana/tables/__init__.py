"""The dashboards, each a table of its panels: to change a dashboard, change it here."""

from tables import application, comparison, job, mpi_io, node, sonde

# In the order in which they link to each other.
DASHBOARDS = [job.DASHBOARD, node.DASHBOARD, application.DASHBOARD, mpi_io.DASHBOARD,
              comparison.DASHBOARD, sonde.DASHBOARD]  # fmt: skip
