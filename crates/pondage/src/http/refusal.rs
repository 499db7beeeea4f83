//! Errors of the dashboard's pages, as JSON: what happened, and what to do.

use axum::http::{header, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{json, Value};
use wire::pg::sqlstate;

use crate::console::Failure;

/// `code`: one of the P-codes, or what the console says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub hint: String,
}

impl Refusal {
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        Refusal { status, code, message: message.into(), hint: hint.into() }
    }

    pub fn log_in() -> Refusal {
        let hint = "POST a user and a password to /api/v1/session, or send them with each request \
                    (curl -u USER:PASSWORD).";
        Refusal::new(StatusCode::UNAUTHORIZED, "P0501", "log in first", hint)
    }

    pub fn wrong_password(user: &str) -> Refusal {
        let hint = "Users of the dashboard are those of auth.admin_users and auth.stats_users, \
                    with the passwords that are configured here.";
        let message = format!("password authentication failed for user \"{user}\"");
        Refusal::new(StatusCode::UNAUTHORIZED, "P0502", message, hint)
    }

    /// The answer has to say which would be right, in the header `Allow`.
    pub fn wrong_method() -> Refusal {
        let hint = "The header Allow lists the methods that there are here.";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "P0507", "not by this method", hint)
    }

    fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } })
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        let status = match failure.code {
            sqlstate::INSUFFICIENT_PRIVILEGE => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        let message = match failure.detail {
            Some(detail) => format!("{}: {detail}", failure.message),
            None => failure.message,
        };
        Refusal::new(status, failure.code, message, failure.hint.unwrap_or_default())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = super::json(self.status, &self.json());
        if self.code == "P0503" {
            let wait = HeaderValue::from_static("60");
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response
    }
}
