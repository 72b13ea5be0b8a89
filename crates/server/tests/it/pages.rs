//! The hosted pages, driven by their forms as a browser without script would.

mod asked;
mod changes;
mod drafts;
mod following;
mod last_place;
mod links;
mod methods;
mod not_online;
mod numbers;
mod opened;
mod protection;
mod refunds;
mod replaced;
mod second_money;
mod states;
mod typed;
mod waiting;
