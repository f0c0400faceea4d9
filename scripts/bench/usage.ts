/** Wrong arguments of a benchmark; the message is one line. */
export class UsageError extends Error {}
