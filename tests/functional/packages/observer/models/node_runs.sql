{{ observer.empty_table({
    'run_id': 'string', 'node_id': 'string', 'status': 'string', 'message': 'string', 'seconds': 'double',
    'finished_at': 'timestamp',
} if not var('with_thread', false) else {
    'run_id': 'string', 'node_id': 'string', 'status': 'string', 'message': 'string', 'seconds': 'double',
    'finished_at': 'timestamp', 'thread': 'string',
}) }}
