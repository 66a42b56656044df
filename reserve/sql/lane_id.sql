select l.id
from {namespace}.lane l
where l.name = %(name)s
