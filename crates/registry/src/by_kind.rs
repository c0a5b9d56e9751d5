//! Tables whose key `kind` says which others they have.

/// Declares an enum whose variants are tables of their own, chosen by the key `kind`, with serde and a JSON Schema.
///
/// ```ignore
/// by_kind! {
///     /// Which packets are lost.
///     #[derive(Clone, Debug, PartialEq)]
///     pub enum Loss: "loss model" {
///         /// Each packet with the same probability.
///         "bernoulli" => Bernoulli(Bernoulli),
///     }
/// }
/// ```
///
/// The text after the colon is what messages call it. It is deserialized as an enum and not as an internally tagged
/// one, for which serde would buffer the values: a buffered value has lost its place in the file.
#[macro_export]
macro_rules! by_kind {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $type:ident: $what:literal {
            $($(#[$of_kind:meta])* $kind:literal => $variant:ident($content:ty)),* $(,)?
        }
    ) => {
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        $(#[$attribute])*
        $visibility enum $type {
            $($(#[$of_kind])* #[serde(rename = $kind)] $variant($content)),*
        }

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
                            $($kind => content.newtype_variant::<$content>().map($type::$variant),)*
                            other => Err(serde::de::Error::unknown_variant(other, KINDS)),
                        }
                    }
                }
                const KINDS: &[&str] = &[$($kind),*];
                deserializer.deserialize_enum($what, KINDS, ByKind)
            }
        }
    };
}
