"""Pure pieces of the HTTP contract: who may enter, what a body may say, what an answer looks like."""

from .coordinates import ABSENT as ABSENT
from .coordinates import Coordinates as Coordinates
from .coordinates import check_coordinates as check_coordinates
from .coordinates import coordinates_of as coordinates_of
from .security import CONTRACT_ROOT as CONTRACT_ROOT
from .security import SECURITY_HEADERS as SECURITY_HEADERS
from .security import RequestFacts as RequestFacts
from .security import SecurityOptions as SecurityOptions
from .security import check_peer as check_peer
from .security import check_request as check_request
from .security import equal_secrets as equal_secrets
from .security import is_same_origin as is_same_origin
from .security import may_issue_token as may_issue_token
