//! Values of a row, read from the bytes that came. Nothing a server sends makes them panic.

use wire::pg::frame::WireError;

/// The columns of a row that are not read yet, in order.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Columns<'a> {
    pub(super) fn new(body: &'a [u8]) -> Result<Columns<'a>, WireError> {
        let (count, rest) = body.split_first_chunk().ok_or(WireError::Truncated("DataRow"))?;
        Ok(Columns { left: u16::from_be_bytes(*count), rest })
    }

    /// How many columns are left.
    pub fn left(&self) -> usize {
        usize::from(self.left)
    }

    /// The next column as it came; `None` is NULL.
    ///
    /// # Errors
    /// `Truncated` when there is none, or not all of it.
    pub fn raw(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        self.left = self.left.checked_sub(1).ok_or(WireError::Truncated("row"))?;
        counted(&mut self.rest)
    }

    /// The next column as it came, NULL being an error.
    ///
    /// # Errors
    /// As [`Columns::raw`], or `Unexpected` for NULL.
    pub fn bytea(&mut self) -> Result<&'a [u8], WireError> {
        self.raw()?.ok_or(NULL)
    }

    /// # Errors
    /// As [`Columns::bytea`], or `NotUtf8`.
    pub fn text(&mut self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytea()?).map_err(|_| WireError::NotUtf8("column"))
    }

    /// # Errors
    /// As [`Columns::raw`], or `Truncated` for a value of another size.
    pub fn int2(&mut self) -> Result<Option<i16>, WireError> {
        self.raw()?.map(int2).transpose()
    }

    /// # Errors
    /// As [`Columns::int2`].
    pub fn int4(&mut self) -> Result<Option<i32>, WireError> {
        self.raw()?.map(int4).transpose()
    }

    /// # Errors
    /// As [`Columns::int2`].
    pub fn int8(&mut self) -> Result<Option<i64>, WireError> {
        self.raw()?.map(int8).transpose()
    }

    /// # Errors
    /// As [`Columns::int2`].
    pub fn float8(&mut self) -> Result<Option<f64>, WireError> {
        self.raw()?.map(float8).transpose()
    }

    /// A value of the one-byte type `"char"`.
    ///
    /// # Errors
    /// As [`Columns::int2`].
    pub fn char(&mut self) -> Result<Option<u8>, WireError> {
        Ok(self.raw()?.map(fixed).transpose()?.map(|[byte]| byte))
    }

    /// The next column as an array of one dimension; NULL is an empty one.
    ///
    /// # Errors
    /// As [`Columns::raw`], or what is wrong with the array's head.
    pub fn array(&mut self) -> Result<Elements<'a>, WireError> {
        self.raw()?.map_or(Ok(Elements { left: 0, rest: &[] }), Elements::new)
    }
}

/// The elements of an array that are not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    fn new(mut bytes: &'a [u8]) -> Result<Elements<'a>, WireError> {
        let dimensions = word(&mut bytes)?;
        let _nulls = word(&mut bytes)?;
        let _type = word(&mut bytes)?;
        if dimensions == 0 {
            return Ok(Elements { left: 0, rest: &[] });
        }
        if dimensions != 1 {
            return Err(WireError::Unexpected { what: "array dimensions", got: dimensions });
        }
        let left = word(&mut bytes)? as usize;
        let _first = word(&mut bytes)?;
        // An element has a length word at least: no more can be there than fit.
        if left > bytes.len() / 4 {
            return Err(WireError::Truncated("array"));
        }
        Ok(Elements { left, rest: bytes })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Option<&'a [u8]>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = counted(&mut self.rest);
        if element.is_err() {
            self.left = 0;
        }
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

const NULL: WireError = WireError::Unexpected { what: "NULL", got: u32::MAX };

/// # Errors
/// `Truncated` for a value of another size.
pub fn int2(bytes: &[u8]) -> Result<i16, WireError> {
    fixed(bytes).map(i16::from_be_bytes)
}

/// # Errors
/// As [`int2`].
pub fn int4(bytes: &[u8]) -> Result<i32, WireError> {
    fixed(bytes).map(i32::from_be_bytes)
}

/// # Errors
/// As [`int2`].
pub fn int8(bytes: &[u8]) -> Result<i64, WireError> {
    fixed(bytes).map(i64::from_be_bytes)
}

/// # Errors
/// As [`int2`].
pub fn float8(bytes: &[u8]) -> Result<f64, WireError> {
    fixed(bytes).map(f64::from_be_bytes)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], WireError> {
    bytes.try_into().map_err(|_| WireError::Truncated("value"))
}

fn word(bytes: &mut &[u8]) -> Result<u32, WireError> {
    let (head, rest) = bytes.split_first_chunk().ok_or(WireError::Truncated("array"))?;
    *bytes = rest;
    Ok(u32::from_be_bytes(*head))
}

fn counted<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, WireError> {
    let length = word(bytes)? as i32;
    let Ok(length) = usize::try_from(length) else {
        return if length == -1 {
            Ok(None)
        } else {
            Err(WireError::Unexpected { what: "length of a value", got: length as u32 })
        };
    };
    let (value, rest) = bytes.split_at_checked(length).ok_or(WireError::Truncated("value"))?;
    *bytes = rest;
    Ok(Some(value))
}
