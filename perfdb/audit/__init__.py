"""Find numbers that cannot be true: rules over results, and arithmetic claims in documents."""

from perfdb.audit.check import AUDIT_VERSION, audit
from perfdb.audit.rules import RULES
from perfdb.audit.subject import Finding, Severity, Subject

__all__ = ["AUDIT_VERSION", "RULES", "Finding", "Severity", "Subject", "audit"]
