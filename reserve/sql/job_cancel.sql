-- Of a running job that the caller has locked: its holder is told when it next extends.
update {namespace}.job
set cancel_requested = true
where id = %(id)s
