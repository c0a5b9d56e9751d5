//! The server in virtual time: dialogues packet by packet, and transfers with packets that a network cuts up.

#[path = "../common/answer.rs"]
mod answer;
mod dialogues;
mod trains;
