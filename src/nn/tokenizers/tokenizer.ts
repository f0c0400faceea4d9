/** Text to token numbers and back: what the text streams and models need to know of any way of cutting text. */

export interface Tokenizer {
  /** Token numbers lie below it. */
  readonly vocabulary: number
  /** The token that fills up a row whose text is too short. */
  readonly padding: number
  /** A text as it is: nothing is put around it, so that pieces of a long text can be joined. */
  encode(text: string): number[]
  /** A text on its own, between the tokens that mark its ends if the tokenizer has any. */
  encodeWithSpecialTokens(text: string): number[]
  decode(tokens: readonly number[]): string
}
