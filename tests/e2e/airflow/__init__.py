"""One Airflow for all tests of this package."""
