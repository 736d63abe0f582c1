{{ config(unique_key='node_id') }}
{{ observer.empty_table({'node_id': 'string', 'kind': 'string', 'code': 'string'}) }}
