/**
 * Names that an owner may give a peer: printable characters, without controls that change the text direction. A separate module, so
 * that the command line can use it without loading the validation of statuses.
 */
export const NAME_PATTERN = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,40}$/u
