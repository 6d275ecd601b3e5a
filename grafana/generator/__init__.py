"""Makes Grafana's dashboards of tables of panels, for each data source in its own way of asking."""
