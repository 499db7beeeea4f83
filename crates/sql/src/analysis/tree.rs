//! The parser's tree with one kind of node.
//!
//! The parser's own types are some 270 structures, and its iterators don't visit all of them. To
//! miss a function call somewhere would be to call a statement harmless that is not. But all those
//! structures can be serialised; so a serialiser turns them into nodes that know their type's name
//! and have their fields by name, and nothing is left out, whatever later versions add.

use std::fmt;

use serde::ser::{self, Impossible, Serialize};

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Nothing,
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Node(Node),
}

/// A structure of the parser.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name of its type: `SelectStmt`, `AExpr`.
    pub kind: &'static str,
    pub fields: Vec<(&'static str, Value)>,
}

const NOTHING: &Value = &Value::Nothing;

impl Node {
    pub fn of(structure: &impl Serialize) -> Result<Value, Unserialised> {
        structure.serialize(ToValue)
    }

    pub fn field(&self, name: &str) -> &Value {
        self.fields.iter().find(|(field, _)| *field == name).map_or(NOTHING, |(_, value)| value)
    }

    pub fn child(&self, name: &str) -> Option<&Node> {
        self.field(name).node()
    }

    pub fn list(&self, name: &str) -> &[Value] {
        match self.field(name) {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub fn nodes(&self, name: &str) -> impl Iterator<Item = &Node> {
        self.list(name).iter().filter_map(Value::node)
    }

    pub fn number(&self, name: &str) -> i64 {
        match self.field(name) {
            Value::Number(number) => *number,
            _ => 0,
        }
    }

    pub fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Value::Text(text) => text,
            _ => "",
        }
    }
}

impl Value {
    pub fn node(&self) -> Option<&Node> {
        match self {
            Value::Node(node) => Some(node),
            _ => None,
        }
    }
}

/// A structure of the parser holds something that has no place in a [`Value`].
#[derive(Debug)]
pub struct Unserialised(String);

impl fmt::Display for Unserialised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unserialised {}

impl ser::Error for Unserialised {
    fn custom<T: fmt::Display>(message: T) -> Unserialised {
        Unserialised(message.to_string())
    }
}

struct ToValue;

struct Items(Vec<Value>);

struct Fields(Node);

fn unexpected<T>(what: &str) -> Result<T, Unserialised> {
    Err(Unserialised(format!("the tree holds {what}")))
}

macro_rules! numbers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, number: $type) -> Result<Value, Unserialised> {
            Ok(Value::Number(i64::from(number)))
        })*
    };
}

impl ser::Serializer for ToValue {
    type Ok = Value;
    type Error = Unserialised;
    type SerializeSeq = Items;
    type SerializeStruct = Fields;
    type SerializeTuple = Impossible<Value, Unserialised>;
    type SerializeTupleStruct = Impossible<Value, Unserialised>;
    type SerializeTupleVariant = Impossible<Value, Unserialised>;
    type SerializeMap = Impossible<Value, Unserialised>;
    type SerializeStructVariant = Impossible<Value, Unserialised>;

    numbers! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
    }

    fn serialize_u64(self, number: u64) -> Result<Value, Unserialised> {
        match i64::try_from(number) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => unexpected("a number that is too large"),
        }
    }

    fn serialize_f32(self, _: f32) -> Result<Value, Unserialised> {
        unexpected("a float")
    }

    /// Only planned trees have some: costs.
    fn serialize_f64(self, _: f64) -> Result<Value, Unserialised> {
        unexpected("a float")
    }

    fn serialize_char(self, letter: char) -> Result<Value, Unserialised> {
        Ok(Value::Text(letter.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Unserialised> {
        Ok(Value::Text(text.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Value, Unserialised> {
        unexpected("bytes")
    }

    fn serialize_none(self) -> Result<Value, Unserialised> {
        Ok(Value::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Unserialised> {
        value.serialize(ToValue)
    }

    fn serialize_unit(self) -> Result<Value, Unserialised> {
        Ok(Value::Nothing)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Unserialised> {
        Ok(Value::Nothing)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Unserialised> {
        Ok(Value::Text(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Unserialised> {
        value.serialize(ToValue)
    }

    /// One of many nodes: it has its own name.
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Unserialised> {
        value.serialize(ToValue)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, Unserialised> {
        Ok(Items(Vec::new()))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields, Unserialised> {
        Ok(Fields(Node { kind: name, fields: Vec::new() }))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unserialised> {
        unexpected("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unserialised> {
        unexpected("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unserialised> {
        unexpected("a tuple")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unserialised> {
        unexpected("a map")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unserialised> {
        unexpected("a variant with fields")
    }
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = Unserialised;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Unserialised> {
        self.0.push(item.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Unserialised> {
        Ok(Value::List(self.0))
    }
}

impl ser::SerializeStruct for Fields {
    type Ok = Value;
    type Error = Unserialised;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unserialised> {
        self.0.fields.push((name, value.serialize(ToValue)?));
        Ok(())
    }

    fn end(mut self) -> Result<Value, Unserialised> {
        // `Node` is but the envelope of one of the others.
        if self.0.kind == "Node" {
            return Ok(self.0.fields.pop().map_or(Value::Nothing, |(_, value)| value));
        }
        Ok(Value::Node(self.0))
    }
}
