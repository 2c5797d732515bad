"""A page in Airflow's web interface: how streams are, and buttons that ask something of them."""
