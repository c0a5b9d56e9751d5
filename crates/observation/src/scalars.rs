//! An event as named values: what its type derives, read by a serializer that knows structs of plain values.

use serde::ser::{self, Impossible, Serialize, SerializeStruct, SerializeStructVariant, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A value of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Integer(i64),
    Float(f64),
    Flag(bool),
    Word(Cow<'static, str>),
}

/// The table adds one value to most events: the path of their subflow. A list that grows for it would take twice the
/// memory, and there are millions.
const ADDED: usize = 1;

/// The values of an event by the names of their fields; what it does not have is left out.
pub(crate) type Scalars = Vec<(&'static str, Scalar)>;

/// The name of an event, none of a struct, and its values.
///
/// # Panics
/// If it is no struct of plain values, which its type decides.
pub(crate) fn scalars_of(event: &impl Serialize) -> (&'static str, Scalars) {
    match event.serialize(Reader) {
        Ok(Read::Fields(name, fields)) => (name, fields),
        // An event without fields is its name.
        Ok(Read::Scalar(Scalar::Word(Cow::Borrowed(name)))) => (name, Vec::new()),
        _ => panic!("an event is a struct of plain values"),
    }
}

/// What is not plain.
#[derive(Debug)]
pub(crate) struct NotPlain;

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no plain value")
    }
}

impl std::error::Error for NotPlain {}

impl ser::Error for NotPlain {
    fn custom<T: fmt::Display>(_: T) -> Self {
        NotPlain
    }
}

/// What was read: the fields of an event by its name, a value, or the absence of one.
enum Read {
    Fields(&'static str, Scalars),
    Scalar(Scalar),
    Nothing,
}

struct Reader;

/// The fields of an event that were read so far.
struct Fields(&'static str, Scalars);

type Result<T> = std::result::Result<T, NotPlain>;
type No = Impossible<Read, NotPlain>;

/// Methods of a serializer: those that make a number of a value, and those of what is not plain.
macro_rules! methods {
    ($($method:ident($type:ty) => $scalar:ident as $number:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<Read> {
            Ok(Read::Scalar(Scalar::$scalar(value as $number)))
        })*
    };
    ($($method:ident($($type:ty),*) -> $read:ty),* $(,)?) => {
        $(fn $method(self, $(_: $type),*) -> Result<$read> {
            Err(NotPlain)
        })*
    };
}

impl Serializer for Reader {
    type Ok = Read;
    type Error = NotPlain;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn serialize_bool(self, flag: bool) -> Result<Read> {
        Ok(Read::Scalar(Scalar::Flag(flag)))
    }

    fn serialize_str(self, word: &str) -> Result<Read> {
        Ok(Read::Scalar(Scalar::Word(word.to_owned().into())))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Read> {
        Ok(Read::Scalar(Scalar::Word(variant.into())))
    }

    fn serialize_none(self) -> Result<Read> {
        Ok(Read::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Read> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Read> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Read> {
        match value.serialize(self)? {
            Read::Fields(_, fields) => Ok(Read::Fields(variant, fields)),
            _ => Err(NotPlain),
        }
    }

    fn serialize_struct(self, _: &'static str, fields: usize) -> Result<Fields> {
        Ok(Fields("", Vec::with_capacity(fields + ADDED)))
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, fields: usize) -> Result<Fields> {
        Ok(Fields(variant, Vec::with_capacity(fields + ADDED)))
    }

    methods!(
        serialize_i8(i8) => Integer as i64, serialize_i16(i16) => Integer as i64, serialize_i32(i32) => Integer as i64,
        serialize_i64(i64) => Integer as i64, serialize_u8(u8) => Integer as i64, serialize_u16(u16) => Integer as i64,
        serialize_u32(u32) => Integer as i64, serialize_u64(u64) => Integer as i64, serialize_f32(f32) => Float as f64,
        serialize_f64(f64) => Float as f64,
    );
    methods!(
        serialize_char(char) -> Read, serialize_bytes(&[u8]) -> Read, serialize_unit() -> Read,
        serialize_unit_struct(&'static str) -> Read, serialize_seq(Option<usize>) -> No, serialize_tuple(usize) -> No,
        serialize_tuple_struct(&'static str, usize) -> No, serialize_map(Option<usize>) -> No,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No,
    );
}

impl SerializeStruct for Fields {
    type Ok = Read;
    type Error = NotPlain;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        match value.serialize(Reader)? {
            Read::Scalar(scalar) => self.1.push((key, scalar)),
            Read::Nothing => {}
            Read::Fields(..) => return Err(NotPlain),
        }
        Ok(())
    }

    fn end(self) -> Result<Read> {
        Ok(Read::Fields(self.0, self.1))
    }
}

impl SerializeStructVariant for Fields {
    type Ok = Read;
    type Error = NotPlain;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        SerializeStruct::serialize_field(self, key, value)
    }

    fn end(self) -> Result<Read> {
        SerializeStruct::end(self)
    }
}
