//! What a builder wrote, the parser reads.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::pg::startup::{first_packet, put_startup, FirstPacket};
use wire::pg::{backend, frontend};

use crate::{body_of, built};

/// Bytes without NUL.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8.., 0..40)
}

/// Text without NUL.
fn text() -> impl Strategy<Value = String> {
    vec(any::<char>().prop_filter("NUL ends a text", |c| *c != '\0'), 0..20)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Text of at least one character.
fn name() -> impl Strategy<Value = String> {
    text().prop_filter("a name is not empty", |name| !name.is_empty())
}

fn target() -> impl Strategy<Value = frontend::Target> {
    prop_oneof![Just(frontend::Target::Statement), Just(frontend::Target::Portal)]
}

proptest! {
    #[test]
    fn startup_packets(minor: u16, params in vec((name(), text()), 0..8)) {
        let params: Vec<_> = params.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let packet = built(|out| put_startup(out, minor, &params));
        let read = first_packet(&packet).expect("well-formed").expect("complete");
        let FirstPacket::Startup(startup) = read.0 else { panic!("not a start-up packet") };
        prop_assert_eq!((startup.major, startup.minor, read.1), (3, minor, packet.len()));
        prop_assert_eq!(startup.params().collect::<Vec<_>>(), params);
    }

    #[test]
    fn queries(text in bytes()) {
        let message = built(|out| frontend::put_query(out, &text));
        let body = body_of(&message, frontend::tag::QUERY);
        prop_assert_eq!(frontend::query(body), Ok(text.as_slice()));
    }

    #[test]
    fn parses(name in bytes(), query in bytes(), oids in vec(any::<u32>(), 0..6)) {
        let mut types = (oids.len() as u16).to_be_bytes().to_vec();
        types.extend(oids.iter().flat_map(|oid| oid.to_be_bytes()));
        let message = built(|out| frontend::put_parse(out, &name, &query, &types));
        let expected = frontend::Parse { name: &name, query: &query, types: &types };
        prop_assert_eq!(frontend::parse(body_of(&message, frontend::tag::PARSE)), Ok(expected));
    }

    #[test]
    fn binds(
        portal in bytes(),
        statement in bytes(),
        values in vec(option::of(vec(any::<u8>(), 0..20)), 0..5),
    ) {
        let values: Vec<_> = values.iter().map(Option::as_deref).collect();
        let whole = built(|out| frontend::put_bind(out, &portal, &statement, &values));
        let body = body_of(&whole, frontend::tag::BIND);
        let head = frontend::bind_head(body).expect("well-formed").expect("complete");
        prop_assert_eq!((head.portal, head.statement), (portal.as_slice(), statement.as_slice()));
        let rest = &body[head.rest..];
        let mut again =
            built(|out| frontend::put_bind_head(out, rest.len(), head.portal, head.statement));
        again.extend_from_slice(rest);
        prop_assert_eq!(again, whole);
    }

    #[test]
    fn describes_closes_and_executes(target in target(), name in bytes(), rows: i32) {
        let message = built(|out| frontend::put_describe(out, target, &name));
        let body = body_of(&message, frontend::tag::DESCRIBE);
        prop_assert_eq!(frontend::describe(body), Ok((target, name.as_slice())));
        let message = built(|out| frontend::put_close(out, target, &name));
        let body = body_of(&message, frontend::tag::CLOSE);
        prop_assert_eq!(frontend::close(body), Ok((target, name.as_slice())));
        let message = built(|out| frontend::put_execute(out, &name, rows));
        let body = body_of(&message, frontend::tag::EXECUTE);
        prop_assert_eq!(frontend::execute(body), Ok((name.as_slice(), rows)));
    }

    #[test]
    fn client_authentication(mechanism in text(), data in vec(any::<u8>(), 0..60), word in bytes()) {
        let message = built(|out| frontend::put_sasl_initial(out, &mechanism, &data));
        let expected = frontend::SaslInitial { mechanism: &mechanism, response: Some(&data) };
        prop_assert_eq!(frontend::sasl_initial(&message[5..]), Ok(expected));
        let message = built(|out| frontend::put_sasl_response(out, &data));
        prop_assert_eq!(frontend::sasl_response(&message[5..]), Ok(data.as_slice()));
        let message = built(|out| frontend::put_password(out, &word));
        prop_assert_eq!(frontend::password(&message[5..]), Ok(word.as_slice()));
    }

    #[test]
    fn errors(
        severity in text(),
        code in text(),
        message in text(),
        detail in option::of(text()),
        hint in option::of(text()),
    ) {
        let reply = backend::ErrorReply {
            severity: &severity,
            code: &code,
            message: &message,
            detail: detail.as_deref(),
            hint: hint.as_deref(),
        };
        let bytes = built(|out| backend::put_error(out, &reply));
        let fields = backend::error_fields(body_of(&bytes, backend::tag::ERROR)).expect("well-formed");
        let read = backend::ErrorReply {
            severity: fields.severity().expect("always there"),
            code: fields.code().expect("always there"),
            message: fields.message().expect("always there"),
            detail: fields.detail(),
            hint: fields.hint(),
        };
        prop_assert_eq!(read, reply);
    }

    #[test]
    fn server_greetings(name in text(), value in text(), pid: u32, key in vec(any::<u8>(), 4..=256)) {
        let message = built(|out| backend::put_parameter_status(out, &name, &value));
        let expected = Ok((name.as_str(), value.as_str()));
        prop_assert_eq!(backend::parameter_status(&message[5..]), expected);
        let message = built(|out| backend::put_backend_key(out, pid, &key));
        prop_assert_eq!(backend::backend_key(&message[5..]), Ok((pid, key.as_slice())));
        let message = built(|out| backend::put_command_complete(out, &name));
        prop_assert_eq!(backend::command_tag(&message[5..]), Ok(name.as_bytes()));
    }

    #[test]
    fn server_authentication(salt: [u8; 4], data in vec(any::<u8>(), 0..60), names in vec(name(), 0..9)) {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let message = built(|out| backend::put_auth_md5(out, salt));
        prop_assert_eq!(backend::auth(&message[5..]), Ok(backend::Auth::Md5(salt)));
        let message = built(|out| backend::put_auth_sasl_continue(out, &data));
        prop_assert_eq!(backend::auth(&message[5..]), Ok(backend::Auth::SaslContinue(&data)));
        let message = built(|out| backend::put_auth_sasl(out, &names));
        prop_assert_eq!(backend::auth(&message[5..]), Ok(backend::Auth::Sasl(names.clone())));
        let message = built(|out| backend::put_negotiate(out, 2, &names));
        let read = backend::negotiate(&message[5..]).expect("well-formed");
        prop_assert_eq!((read.minor, read.options().collect::<Vec<_>>()), (2, names));
    }
}
