import { ValidationError } from "waypost";

/** An issue of a field, like one of the API's, for what cannot be sent at all. */
export const invalid = (path: string, message: string): ValidationError =>
  new ValidationError(message, { code: "VALIDATION_ERROR", details: { issues: [{ path, message }] } });

/** The whole number that a person typed. JSON has no "not a number": it would be sent as null, which means something else. */
export function wholeNumber(path: string, text: string): number {
  const value = Number(text.trim());
  if (text.trim() === "" || !Number.isInteger(value)) throw invalid(path, "must be a whole number");
  return value;
}

/** The same, where an empty field means "none of our own". */
export const optionalNumber = (path: string, text: string): number | null => (text.trim() === "" ? null : wholeNumber(path, text));
