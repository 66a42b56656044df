select
  claimed.id,
  claimed.version
from claimed
order by claimed.id
