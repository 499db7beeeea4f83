//! Values as rows.

/// Where the rows of one batch go: values write what has changed of them.
///
/// `kid` names one incarnation of a collection: its rows carry it, and the key's row says which one
/// is the key's.
pub trait Rows {
    fn hash_put(&mut self, kid: i64, field: &[u8], value: &[u8]);
    fn hash_delete(&mut self, kid: i64, field: &[u8]);
    fn set_put(&mut self, kid: i64, member: &[u8]);
    fn set_delete(&mut self, kid: i64, member: &[u8]);
    fn zset_put(&mut self, kid: i64, member: &[u8], score: f64);
    fn zset_delete(&mut self, kid: i64, member: &[u8]);
    fn list_put(&mut self, kid: i64, pos: i64, value: &[u8]);
    /// Rows outside of `first..=last` are not the list's any more.
    fn list_trim(&mut self, kid: i64, first: i64, last: i64);
    fn stream_put(&mut self, kid: i64, ms: u64, seq: u64, fields: &[u8]);
    fn stream_delete(&mut self, kid: i64, ms: u64, seq: u64);
    fn stream_group_put(&mut self, kid: i64, name: &[u8], state: &[u8]);
    fn stream_group_delete(&mut self, kid: i64, name: &[u8]);
}
