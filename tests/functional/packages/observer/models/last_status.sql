{{ config(unique_key='node_id') }}
{{ observer.empty_table({'node_id': 'string', 'status': 'string', 'runs': 'bigint'}) }}
