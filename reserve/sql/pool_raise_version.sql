update {namespace}.pool
set version = version + 1
where id = %(id)s
