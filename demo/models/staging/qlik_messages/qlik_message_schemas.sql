{{ qlik_message_schemas(messages=ref('stg_qlik_messages__checkout_log')) }}
