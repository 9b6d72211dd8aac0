package awserror

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Kind is what an error means for the caller.
type Kind string

// The kinds of errors.
const (
	Permission  Kind = "permission"  // the credentials may not do this
	Credentials Kind = "credentials" // AWS does not know the credentials
	Expired     Kind = "expired"     // the credentials were good before
	Missing     Kind = "missing"     // no such table, stream or bucket
	Foreign     Kind = "foreign"     // the answer is not one of AWS
	Unreachable Kind = "unreachable" // there was no answer
	Region      Kind = "region"      // it is in another region
	Busy        Kind = "busy"        // the table is being created, changed or deleted
	Limit       Kind = "limit"       // a quota of the account
	Archived    Kind = "archived"    // the object is in cold storage
	Throttled   Kind = "throttled"   // more was asked for than the capacity
	Trouble     Kind = "trouble"     // AWS itself failed
	Conflict    Kind = "conflict"    // other writers changed the same items
	Invalid     Kind = "invalid"     // AWS does not take the call as it is
	TooLarge    Kind = "too large"   // a size limit of DynamoDB
)

// Environment reports whether the cause lies in the surroundings: in what the
// operator sets up, not in the course of the work.
func (k Kind) Environment() bool {
	return !slices.Contains([]Kind{Throttled, Trouble, Conflict, Invalid, TooLarge}, k)
}

// Lasting reports whether trying the same call again is of no use until a person acts.
func (k Kind) Lasting() bool {
	return slices.Contains([]Kind{Permission, Credentials, Expired, Missing, Foreign}, k)
}

// Passing reports whether the same call may succeed later, though no person acts.
func (k Kind) Passing() bool {
	return slices.Contains([]Kind{Unreachable, Busy, Throttled, Trouble, Conflict}, k)
}

// ExpiredCodes are the codes by which AWS refuses credentials that were good before.
var ExpiredCodes = []string{"ExpiredTokenException", "ExpiredToken", "RequestExpired", "TokenRefreshRequired"}

// MissingCodes are the codes by which DynamoDB and its streams say that there is no such table or stream.
var MissingCodes = []string{"ResourceNotFoundException", "TableNotFoundException"}

// PermissionCodes are the codes by which AWS denies a call.
var PermissionCodes = []string{"AccessDeniedException", "AccessDenied", "UnauthorizedOperation", "NotAuthorized"}

// codeUnknown is the SDK's code of an answer that carries none.
const codeUnknown = "UnknownError"

// refusal is what some codes mean. {action}, {subject} and {where} stand for those of the call.
type refusal struct {
	codes         []string
	service       string // "": of every service
	kind          Kind
	cause, remedy string
}

// refusals are tried in order. The codes are those of the API references of
// DynamoDB, DynamoDB Streams and S3, and of their common errors.
var refusals = []refusal{
	{PermissionCodes, "", Permission, "no permission for {action} on {subject} in {where}",
		"allow this action in the IAM policy of the credentials in use"},
	{[]string{"KMSAccessDeniedException", "KMS.AccessDeniedException"}, "", Permission,
		"no permission for {action} on {subject} in {where}, because the credentials may not use the key that encrypts it",
		"allow kms:Decrypt on the key in the IAM policy of the credentials in use and in the key's own policy"},
	{[]string{"RequestTimeTooSkewed"}, "", Credentials, "this machine's clock differs too much from that of AWS",
		"set the clock and start again"},
	{ExpiredCodes, "", Expired, "the AWS credentials have expired", "renew them (for example with `aws sso login`) and start again"},
	{[]string{
		"UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"InvalidAccessKeyId", "OptInRequired",
	}, "", Credentials, "the AWS credentials were refused in {where}",
		"check AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then --region and this machine's clock"},
	{[]string{"NoSuchBucket"}, s3.ServiceID, Missing, "there is no bucket for {subject}", "check the name of the bucket"},
	{[]string{"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}, s3.ServiceID,
		Region,
		"the bucket of {subject} is in another region than {where}", "copy the objects to a bucket in that region"},
	{[]string{"InvalidObjectState"}, s3.ServiceID, Archived, "{subject} is in a cold storage class, from which it cannot be read",
		"restore it (`aws s3api restore-object`) and start again"},
	{MissingCodes, "", Missing, "{subject} has gone away, or is in another region or account than {where}",
		"check the table, its stream and the state table, and start again"},
	{[]string{"LimitExceededException"}, dynamodbstreams.ServiceID, Throttled,
		"{subject} has more readers than AWS serves (two for each shard)",
		"stop other readers of the stream, such as Lambda functions and Kinesis adapters, or start again later"},
	{[]string{
		"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingException", "Throttling", "ThrottledException",
		"RequestThrottledException", "RequestThrottled", "RequestLimitExceeded", "BandwidthLimitExceeded", "TooManyRequestsException",
		"SlowDown", "EC2ThrottledException", "PriorRequestNotComplete",
	}, "", Throttled, "AWS throttles {action} on {subject} in {where}, because more is asked for than its capacity allows",
		"raise the capacity or the quota, or lower --budget or --read-rate, and start again"},
	{[]string{"LimitExceededException", "TableQuotaExceededException", "ServiceQuotaExceededException"}, "", Limit,
		"{action} on {subject} exceeds a limit of the AWS account in {where}: its number of tables, or of tables that are created or changed " +
			"at once",
		"wait until other tables are done, or ask AWS for a higher quota, and start again"},
	{[]string{"ResourceInUseException", "TableInUseException"}, "", Busy, "{subject} in {where} is being created, changed or deleted",
		"wait until it is ACTIVE and start again"},
	{[]string{
		"TransactionConflictException", "TransactionCanceledException", "TransactionInProgressException", "ConditionalCheckFailedException",
		"ReplicatedWriteConflictException", "IdempotentParameterMismatchException", "OperationAborted",
	}, "", Conflict, "other writers changed the same items of {subject} at the same time, too often", "start again"},
	{[]string{"ItemCollectionSizeLimitExceededException"}, "", TooLarge,
		"a partition of {subject} has reached 10 GB, the limit of a table with local secondary indexes",
		"delete items of that partition, or spread them over several"},
	{[]string{"RequestEntityTooLarge", "EntityTooLarge", "RequestTooLarge"}, "", TooLarge, "{action} on {subject} is larger than AWS takes",
		"report this as a defect of dynamill, with this text"},
	{[]string{"ValidationException", "SerializationException", "ValidationError", "InvalidRequest", "InvalidArgument"}, "", Invalid,
		"AWS refuses {action} on {subject} in {where} as invalid",
		"check that the rule file names the table's own key attributes, and that dynamill made the state table; if so, report this as a " +
			"defect of dynamill, with this text"},
	{[]string{"InternalServerError", "InternalServerErrorException", "InternalFailure", "InternalError", "ServiceUnavailable",
		"ServiceUnavailableException", "RequestTimeout", "RequestTimeoutException"}, "",
		Trouble, "AWS itself failed at {action} on {subject} in {where}", "start again; https://health.aws.amazon.com lists outages"},
}

func refusalOf(code, service string) *refusal {
	for i, r := range refusals {
		if slices.Contains(r.codes, code) && (r.service == "" || r.service == service) {
			return &refusals[i]
		}
	}
	return nil
}
