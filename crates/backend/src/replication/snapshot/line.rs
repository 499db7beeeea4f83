//! A row as COPY writes it in text: values between tabs, a newline at the end.
//!
//! Source: "COPY", Text Format; `CopyAttributeOutText` in src/backend/commands/copyto.c.

/// Takes a row apart, in place: what is escaped becomes shorter.
///
/// # Errors
/// It is not what COPY writes.
pub fn split<'a>(
    line: &'a mut [u8],
    fields: &mut Vec<Option<&'a [u8]>>,
) -> Result<(), &'static str> {
    let Some((b'\n', mut rest)) = line.split_last_mut() else {
        return Err("a row without its end");
    };
    loop {
        let (mut length, mut is_plain) = (rest.len(), true);
        for (at, byte) in rest.iter().enumerate() {
            match byte {
                b'\t' => {
                    length = at;
                    break;
                }
                b'\\' => is_plain = false,
                b'\n' => return Err("two rows in one message"),
                _ => {}
            }
        }
        let (field, tail) = rest.split_at_mut(length);
        fields.push(match is_plain {
            true => Some(field),
            false if field == b"\\N" => None,
            false => Some(unescape(field)?),
        });
        match tail.split_first_mut() {
            Some((_, tail)) => rest = tail,
            None => return Ok(()),
        }
    }
}

fn unescape(field: &mut [u8]) -> Result<&[u8], &'static str> {
    let (mut from, mut to) = (0, 0);
    while let Some(&byte) = field.get(from) {
        let plain = match byte {
            b'\\' => {
                from += 1;
                meant(field.get(from)).ok_or("an escape that COPY does not write")?
            }
            byte => byte,
        };
        // It is never ahead of what is read.
        if let Some(place) = field.get_mut(to) {
            *place = plain;
        }
        (from, to) = (from + 1, to + 1);
    }
    field.get(..to).ok_or("a value longer than it was")
}

/// What a letter behind a backslash stands for.
fn meant(letter: Option<&u8>) -> Option<u8> {
    Some(match letter? {
        b'\\' => b'\\',
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        _ => return None,
    })
}
