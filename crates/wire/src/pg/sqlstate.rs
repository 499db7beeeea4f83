//! The SQLSTATE codes a pooler sends or looks for.
//!
//! Source: PostgreSQL documentation, appendix "PostgreSQL Error Codes"; the heading of each class
//! is repeated here.

// Class 00: Successful Completion
pub const SUCCESSFUL_COMPLETION: &str = "00000";

// Class 01: Warning
pub const WARNING: &str = "01000";

// Class 08: Connection Exception
pub const CONNECTION_EXCEPTION: &str = "08000";
pub const CONNECTION_DOES_NOT_EXIST: &str = "08003";
pub const CONNECTION_REJECTED: &str = "08004";
pub const CONNECTION_FAILURE: &str = "08006";
pub const TRANSACTION_RESOLUTION_UNKNOWN: &str = "08007";
pub const CONNECTION_UNABLE_TO_ESTABLISH: &str = "08001";
pub const PROTOCOL_VIOLATION: &str = "08P01";

// Class 0A: Feature Not Supported. Also "cached plan must not change result type".
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";

// Class 22: Data Exception
pub const INVALID_PARAMETER_VALUE: &str = "22023";

// Class 25: Invalid Transaction State
pub const ACTIVE_SQL_TRANSACTION: &str = "25001";
pub const READ_ONLY_SQL_TRANSACTION: &str = "25006";
pub const NO_ACTIVE_SQL_TRANSACTION: &str = "25P01";
pub const IN_FAILED_SQL_TRANSACTION: &str = "25P02";
pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: &str = "25P03";
pub const TRANSACTION_TIMEOUT: &str = "25P04";

// Class 26: Invalid SQL Statement Name
pub const INVALID_SQL_STATEMENT_NAME: &str = "26000";

// Class 28: Invalid Authorization Specification
pub const INVALID_AUTHORIZATION_SPECIFICATION: &str = "28000";
pub const INVALID_PASSWORD: &str = "28P01";

// Class 34: Invalid Cursor Name
pub const INVALID_CURSOR_NAME: &str = "34000";

// Class 3D: Invalid Catalog Name
pub const INVALID_CATALOG_NAME: &str = "3D000";

// Class 40: Transaction Rollback
pub const SERIALIZATION_FAILURE: &str = "40001";
pub const DEADLOCK_DETECTED: &str = "40P01";

// Class 42: Syntax Error or Access Rule Violation
pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
pub const SYNTAX_ERROR: &str = "42601";
pub const DUPLICATE_OBJECT: &str = "42710";
pub const UNDEFINED_FUNCTION: &str = "42883";
pub const UNDEFINED_TABLE: &str = "42P01";
pub const UNDEFINED_COLUMN: &str = "42703";
pub const WRONG_OBJECT_TYPE: &str = "42809";
pub const UNDEFINED_OBJECT: &str = "42704";
pub const INDETERMINATE_DATATYPE: &str = "42P18";
pub const DUPLICATE_CURSOR: &str = "42P03";
pub const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";

// Class 53: Insufficient Resources
pub const INSUFFICIENT_RESOURCES: &str = "53000";
pub const OUT_OF_MEMORY: &str = "53200";
pub const TOO_MANY_CONNECTIONS: &str = "53300";
pub const CONFIGURATION_LIMIT_EXCEEDED: &str = "53400";

// Class 54: Program Limit Exceeded
pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";

// Class 42: Syntax Error or Access Rule Violation.
pub const RESERVED_NAME: &str = "42939";

// Class 55: Object Not In Prerequisite State
pub const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";
pub const OBJECT_IN_USE: &str = "55006";
pub const CANT_CHANGE_RUNTIME_PARAM: &str = "55P02";
pub const LOCK_NOT_AVAILABLE: &str = "55P03";

// Class 57: Operator Intervention
pub const OPERATOR_INTERVENTION: &str = "57000";
pub const QUERY_CANCELED: &str = "57014";
pub const ADMIN_SHUTDOWN: &str = "57P01";
pub const CRASH_SHUTDOWN: &str = "57P02";
pub const CANNOT_CONNECT_NOW: &str = "57P03";
pub const DATABASE_DROPPED: &str = "57P04";
pub const IDLE_SESSION_TIMEOUT: &str = "57P05";

// Class 58: System Error
pub const SYSTEM_ERROR: &str = "58000";
pub const IO_ERROR: &str = "58030";

// Class F0: Configuration File Error
pub const CONFIG_FILE_ERROR: &str = "F0000";

// Class XX: Internal Error
pub const INTERNAL_ERROR: &str = "XX000";
