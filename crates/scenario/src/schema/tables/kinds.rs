//! Tables whose key `kind` says which others they have.

/// Deserializes an enum whose variants are tables of their own, chosen by `kind`: see [`super::super::deserialize`] for why
/// serde's own internally tagged enums do not serve.
macro_rules! by_kind {
    ($type:ident, $what:literal, { $($name:literal => $variant:ident($content:ty)),* $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ByKind;
                impl<'de> serde::de::Visitor<'de> for ByKind {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a table with `kind`")
                    }

                    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, access: A) -> Result<$type, A::Error> {
                        use serde::de::VariantAccess as _;
                        let (kind, content) = access.variant::<String>()?;
                        match kind.as_str() {
                            $($name => content.newtype_variant::<$content>().map($type::$variant),)*
                            other => Err(serde::de::Error::unknown_variant(other, KINDS)),
                        }
                    }
                }
                const KINDS: &[&str] = &[$($name),*];
                deserializer.deserialize_enum($what, KINDS, ByKind)
            }
        }
    };
}

pub(super) use by_kind;
