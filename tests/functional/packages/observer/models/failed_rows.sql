{{ observer.empty_table({'test_id': 'string', 'row_text': 'string'}) }}
