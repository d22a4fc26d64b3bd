"""Errors that are a user's to mend: each message says what was wrong, what is allowed, and what to do."""


class ExplorerError(Exception):
    """A mistake outside the program: the command line prints it on one line and exits with 2, the page shows it."""


class SettingError(ExplorerError):
    """A setting, number or choice outside what is allowed."""


class PromptError(ExplorerError):
    """A prompt that is empty, unreadable or too long."""


class TraceError(ExplorerError):
    """A trace file that is broken or of an unknown version; the message names the field."""


class RecordError(ExplorerError):
    """A record of the laboratory that is broken or of an unknown version; the message names the field."""


class CheckpointError(ExplorerError):
    """A target or drafter on disk that is missing, broken, or does not fit."""


class FetchError(ExplorerError):
    """The default target could not be brought here."""


class DeviceError(ExplorerError):
    """A device, dtype or backend that this machine does not have, or that ran out of memory."""


class LimitError(ExplorerError):
    """A run that is beyond what the operator of this server allows; one that had begun keeps what it has so far."""


class ShutdownError(LimitError):
    """A run that the server refused or ended because it is stopping."""
