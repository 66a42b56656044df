select l.name
from {namespace}.lane l
where l.name > %(after)s
order by l.name
limit %(limit)s
