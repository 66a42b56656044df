-- One job that waits for its time.
select j.id
from {namespace}.job_scheduled j
where j.id = %(id)s
for no key update
