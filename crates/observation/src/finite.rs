//! Finds numbers that JSON does not have. Serde would write NaN and infinities as null, which stands for "not
//! observed".

use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt;

/// Checks every number of a value.
///
/// # Errors
/// The key of the first that is not finite.
pub fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), NotFinite> {
    value.serialize(Walker { at: String::new() })
}

/// A metric that is NaN or infinite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFinite(String);

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFinite {}

impl ser::Error for NotFinite {
    fn custom<T: fmt::Display>(message: T) -> Self {
        NotFinite(message.to_string())
    }
}

/// Visits a value; `at` is where in the whole it is.
struct Walker {
    at: String,
}

/// Visits the members of a value.
struct Members {
    at: String,
    next: usize,
    key: String,
}

impl Walker {
    fn members(self) -> Members {
        Members { at: self.at, next: 0, key: String::new() }
    }
}

impl Members {
    fn named<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<(), NotFinite> {
        let at = if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) };
        value.serialize(Walker { at })
    }

    fn numbered<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        let at = format!("{}[{}]", self.at, self.next);
        self.next += 1;
        value.serialize(Walker { at })
    }
}

macro_rules! nothing_to_check {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _value: $type) -> Result<(), NotFinite> { Ok(()) })*
    };
}

impl Serializer for Walker {
    type Ok = ();
    type Error = NotFinite;
    type SerializeSeq = Members;
    type SerializeTuple = Members;
    type SerializeTupleStruct = Members;
    type SerializeTupleVariant = ser::Impossible<(), NotFinite>;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = ser::Impossible<(), NotFinite>;

    nothing_to_check! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_u8(u8)
        serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_char(char) serialize_str(&str)
        serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    fn serialize_f32(self, value: f32) -> Result<(), NotFinite> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), NotFinite> {
        if value.is_finite() { Ok(()) } else { Err(NotFinite(format!("`{}` is {value}", self.at))) }
    }

    fn serialize_none(self) -> Result<(), NotFinite> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotFinite> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotFinite> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), NotFinite> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), NotFinite> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), NotFinite> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members, NotFinite> {
        Ok(self.members())
    }

    fn serialize_tuple(self, _: usize) -> Result<Members, NotFinite> {
        Ok(self.members())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members, NotFinite> {
        Ok(self.members())
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NotFinite> {
        Err(ser::Error::custom(format!("{name}: no metric is an enum with data")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members, NotFinite> {
        Ok(self.members())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members, NotFinite> {
        Ok(self.members())
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NotFinite> {
        Err(ser::Error::custom(format!("{name}: no metric is an enum with data")))
    }
}

macro_rules! elements {
    ($($compound:ident::$method:ident)*) => {
        $(impl ser::$compound for Members {
            type Ok = ();
            type Error = NotFinite;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
                self.numbered(value)
            }

            fn end(self) -> Result<(), NotFinite> {
                Ok(())
            }
        })*
    };
}

elements! { SerializeSeq::serialize_element SerializeTuple::serialize_element SerializeTupleStruct::serialize_field }

impl ser::SerializeStruct for Members {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), NotFinite> {
        self.named(key, value)
    }

    fn end(self) -> Result<(), NotFinite> {
        Ok(())
    }
}

impl ser::SerializeMap for Members {
    type Ok = ();
    type Error = NotFinite;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotFinite> {
        // The keys of maps are texts.
        self.key = serde_json::to_value(key).ok().and_then(|key| key.as_str().map(str::to_owned)).unwrap_or_default();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotFinite> {
        self.named(&self.key, value)
    }

    fn end(self) -> Result<(), NotFinite> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Clone, Serialize)]
    struct Inner {
        rate_bps: Option<f64>,
        span_s: (f64, f64),
    }

    #[derive(Clone, Serialize)]
    struct Outer {
        name: &'static str,
        #[serde(flatten)]
        first: Inner,
        list: Vec<Inner>,
    }

    fn outer() -> Outer {
        let inner = Inner { rate_bps: Some(1.0), span_s: (0.0, 2.5) };
        Outer { name: "x", first: inner.clone(), list: vec![inner.clone(), inner] }
    }

    fn refused(change: impl FnOnce(&mut Outer)) -> String {
        let mut outer = outer();
        change(&mut outer);
        check(&outer).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_number_is_found_wherever_it_is() {
        assert_eq!(check(&outer()), Ok(()));
        assert_eq!(refused(|outer| outer.first.rate_bps = Some(f64::NAN)), "`rate_bps` is NaN");
        assert_eq!(refused(|outer| outer.list[1].span_s.1 = f64::INFINITY), "`list[1].span_s[1]` is inf");
        assert_eq!(refused(|outer| outer.list[0].rate_bps = Some(f64::NEG_INFINITY)), "`list[0].rate_bps` is -inf");
        let mut nothing = outer();
        nothing.first.rate_bps = None;
        assert_eq!(check(&nothing), Ok(()), "not observed is no fault");
    }
}
