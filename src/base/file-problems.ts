/** What the system says of files that cannot be read or written, in words. */

const PROBLEMS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/EROFS|read-only file system/i, 'the file system is read-only'],
  [/ENOSPC|no space left/i, 'the disk is full'],
  [/EDQUOT|quota/i, 'the quota of the disk is used up'],
  [/EFBIG|file too large/i, 'the file is larger than allowed'],
  [/EACCES|EPERM|permission denied/i, 'permission is denied'],
  [/ENOTDIR|not a directory/i, 'a part of the path is a file'],
  [/EISDIR|is a directory/i, 'it is a directory'],
  [/ENOENT|no such file/i, 'there is no such file or folder'],
  [/EEXIST/, 'it exists already'],
  [/EMFILE|too many open files/i, 'too many files are open'],
  [/EIO/, 'the device reports an error']
]

/** Such as `EROFS: the file system is read-only`. @param error of the system, or a database's message about one */
export function fileProblem(error: unknown): string {
  const { code, message = String(error) } = (error ?? {}) as { readonly code?: unknown; readonly message?: string }
  const isOfSystem = typeof code === 'string' && /^E[A-Z]+$/.test(code)
  const [, words] = PROBLEMS.find(([pattern]) => pattern.test(isOfSystem ? code : message)) ?? []
  if (words === undefined) return isOfSystem ? code : message
  return isOfSystem ? `${code}: ${words}` : words
}
