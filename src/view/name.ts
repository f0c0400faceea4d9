/** What an owner may call a peer: printable, and nothing that changes the order of what stands around it. */
export const NAME_PATTERN = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,40}$/u
