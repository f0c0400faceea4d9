/** The `tokenizer.json` of trained tokenizers, in Hugging Face's format. */
import type { Merge } from './merges.js'
import type { TokenizerJson } from './subwords.js'

export const SPECIAL_TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'] as const
/** Of pretrained models. */
const MASK = '[MASK]'
export const END_OF_TEXT = '<|endoftext|>'
/** Also the limit of the library. */
export const MAX_WORD_CHARACTERS = 100

/** The character that stands for each byte (GPT-2): itself if it is printable, otherwise one from 256 on. */
export const BYTES: readonly string[] = byteCharacters()

function byteCharacters(): string[] {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++))
}

function specialToken(content: string, id: number): object {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
}

function numbered(vocabulary: readonly string[]): Record<string, number> {
  return Object.fromEntries(vocabulary.map((piece, token) => [piece, token]))
}

/** @param vocabulary all pieces in token order, with `END_OF_TEXT` */
export function bytePairJson(vocabulary: readonly string[], merges: readonly Merge[]): TokenizerJson {
  return {
    version: '1.0',
    added_tokens: [specialToken(END_OF_TEXT, vocabulary.indexOf(END_OF_TEXT))],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      vocab: numbered(vocabulary),
      merges: merges.map(({ left, right }) => `${left} ${right}`)
    }
  }
}

/** @param vocabulary all pieces in token order, with `SPECIAL_TOKENS` */
export function wordPieceJson(vocabulary: readonly string[], isLowerCase = true): TokenizerJson {
  const vocab = numbered(vocabulary)
  const mark = (id: '[CLS]' | '[SEP]', type_id = 0) => ({ SpecialToken: { id, type_id } })
  const named = (id: '[CLS]' | '[SEP]') => ({ id, ids: [vocab[id]], tokens: [id] })
  return {
    version: '1.0',
    added_tokens: [...SPECIAL_TOKENS, MASK]
      .filter(content => Object.hasOwn(vocab, content))
      .map(content => specialToken(content, vocab[content])),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: isLowerCase
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [mark('[CLS]'), { Sequence: { id: 'A', type_id: 0 } }, mark('[SEP]')],
      pair: [
        mark('[CLS]'),
        { Sequence: { id: 'A', type_id: 0 } },
        mark('[SEP]'),
        { Sequence: { id: 'B', type_id: 1 } },
        mark('[SEP]', 1)
      ],
      special_tokens: { '[CLS]': named('[CLS]'), '[SEP]': named('[SEP]') }
    },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: MAX_WORD_CHARACTERS,
      vocab
    }
  }
}
