"""A page in Airflow's web interface: the status of streams, and buttons that control them."""
