select id
from claimed
order by id
