#!/bin/sh
# Makes the database and its logins: sluice_owner owns the tables and migrates, sluice_service serves.
# Neither is a superuser, so that row-level security holds. Runs once, as a superuser; takes the usual PG… variables.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set owner_password="${OWNER_PASSWORD:?}" --set service_password="${SERVICE_PASSWORD:?}" <<'SQL'
CREATE ROLE sluice_app NOLOGIN;
CREATE ROLE sluice_system NOLOGIN;
CREATE ROLE sluice_batch NOLOGIN;
GRANT sluice_batch TO sluice_app WITH INHERIT FALSE, SET TRUE;
CREATE ROLE sluice_purge NOLOGIN;
GRANT sluice_purge TO sluice_system WITH INHERIT FALSE, SET TRUE;
CREATE ROLE sluice_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE sluice_service LOGIN PASSWORD :'service_password';
GRANT sluice_app, sluice_system TO sluice_owner, sluice_service;
CREATE DATABASE sluice OWNER sluice_owner;
REVOKE ALL ON DATABASE sluice FROM PUBLIC;
GRANT CONNECT ON DATABASE sluice TO sluice_service;
SQL
