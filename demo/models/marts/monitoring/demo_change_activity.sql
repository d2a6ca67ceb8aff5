{#-
    The demo of PostgreSQL compares its marts with the database instead.

    Not named change_activity, like its table: dbt would take its description for that of a model of this name in a project that
    uses the package.
-#}
{%- set tables_of_demos = {
    'qlik': ['customers', 'products', 'orders', 'order_items', 'shipments'],
    'openedge': ['operators', 'deliveries'],
    'soliddb': ['clients', 'accounts', 'transfers', 'teller_shifts'],
    'kafka': ['shoppers', 'carts', 'articles', 'cart_lines'],
    'mariadb': ['parcels', 'wallets', 'payments'],
} -%}
{%- set tables = [] -%}
{%- for demo in env_var('AFTERIMAGE_DEMOS', '').split(',') if demo -%}
    {%- do tables.extend(tables_of_demos.get(demo, [])) -%}
{%- endfor -%}
{{ config(enabled=tables | length > 0, alias='change_activity') }}
{{ change_activity(tables) if tables }}
